/* Licences of the libraries in this file: NOTICE.txt */
import{b as a,c as b,d as c}from"./chunk-54WX33WZ.js";import"./chunk-ZDPW7QV5.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};

/* Licences of the libraries in this file: NOTICE.txt */
import{b as a,c as b,d as c}from"./chunk-LQS5UGKN.js";import"./chunk-PJLAHBY7.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};

/* Licences of the libraries in this file: NOTICE.txt */
import{i as a,j as b,k as c}from"./chunk-K7TE4ZYE.js";import"./chunk-ZWHIS4DV.js";import"./chunk-TUIPDJOY.js";import"./chunk-ZDPW7QV5.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};

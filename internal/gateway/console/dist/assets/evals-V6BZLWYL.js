/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-FQ4QQQM5.js";import"./chunk-ZWHIS4DV.js";import"./chunk-TUIPDJOY.js";import"./chunk-ZDPW7QV5.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
